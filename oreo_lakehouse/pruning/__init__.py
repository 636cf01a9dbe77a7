"""Skipping beyond min/max: an optimizer rule for Spark that uses the live layout's metadata. Nothing is built yet."""
