"""Reports of measurements: one HTML page with its figures, and the forms that other programs read."""
