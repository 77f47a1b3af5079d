"""The process that speaks to addresses which people gave for their notices; the service starts it, and it decides nothing."""
