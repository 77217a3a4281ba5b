"""Every table and figure of the paper, one file each, with the published values beside them."""
