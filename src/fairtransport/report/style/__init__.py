"""Style shared by all figures and pages: colours of groups, axes, image files, and the parts of an HTML page."""
