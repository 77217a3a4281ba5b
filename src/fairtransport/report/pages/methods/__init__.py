"""Page that compares several methods on the same test rows."""
