"""Strong cuts of generated MaxCut sets, kept in the package as one JSON file a set and data seed."""
