"""Studies: what theory says of samplers, and what they do, on targets whose law is known."""
