"""Fixed cases, this project's engines and other people's samplers on them, and the report of both."""
