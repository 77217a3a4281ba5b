"""One matplotlib display per file, as in scikit-learn."""
