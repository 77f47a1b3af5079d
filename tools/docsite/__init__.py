"""The documentation as a site, and as the pages that the hub serves."""
