"""What every call runs through: settings, device records, per-matrix status."""
