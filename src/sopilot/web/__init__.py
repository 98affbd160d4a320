"""HTML pages: one template environment, one style sheet, figures."""
