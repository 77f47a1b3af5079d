"""What is stored for people, and what it takes of their tenants' quotas."""
