"""Logging in with the account of a company's provider: Keycloak, another one that speaks OpenID Connect, or GitHub."""
