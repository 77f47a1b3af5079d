"""Routes of teams: their settings, members, requests, bookings and service accounts."""
