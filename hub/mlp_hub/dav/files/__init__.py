"""Files of datasets: reads, uploads, copies, locks and properties."""
