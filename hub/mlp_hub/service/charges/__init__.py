"""What homes and jobs' directories take of their tenants' storage, and what follows where that is over."""
