"""The paper's published numbers beside our own: which cells are run, how they are kept, and the report on them."""
