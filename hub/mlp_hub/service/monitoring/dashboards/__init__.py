"""Dashboards of Grafana: one table of panels, and the JSON that Grafana imports."""
