"""Random networks of quantised layers: values beside f64, and the same bits from every build of the library."""
