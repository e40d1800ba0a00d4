"""Tables from files to numbers: reading and writing CSV and Parquet, and what each column means to a model.

Reading and writing need pyarrow, the extra ``cli``; a model that was fitted from a table loads without it.
"""
