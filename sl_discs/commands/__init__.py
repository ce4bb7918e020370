"""What `sl-discs` can do: one file a command, and `main`, which lists and starts them."""
