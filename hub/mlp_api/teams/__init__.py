"""Teams on the wire: requests that their admins decide, bookings, and previews of changes."""
