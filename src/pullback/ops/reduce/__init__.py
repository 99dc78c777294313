"""Operations along axes: sums, extremes, order, statistics, scans."""
