"""Strong cuts of generated MaxCut sets, kept in the package as one JSON file per set and data seed."""
