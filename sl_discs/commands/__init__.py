"""The commands of `sl-discs`: one file per command, and `main`, which lists and starts them."""
