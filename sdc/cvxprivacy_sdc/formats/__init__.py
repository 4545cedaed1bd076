"""Files of tables: delimited text, Parquet, Excel, Stata, SPSS, SAS."""
