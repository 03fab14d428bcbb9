"""Values as templates show them: charts, differences, rows, fields; no request and no Redis."""
