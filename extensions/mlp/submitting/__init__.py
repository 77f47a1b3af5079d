"""From what a person wrote to the request that is sent."""
