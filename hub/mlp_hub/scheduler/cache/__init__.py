"""State kept from cycle to cycle, and what inadmissible workloads wait for."""
