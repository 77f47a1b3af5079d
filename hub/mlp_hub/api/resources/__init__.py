"""The routes, one module per resource; each exports `ROUTES`."""
