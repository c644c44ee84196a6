"""What one request carries while it is generated."""
