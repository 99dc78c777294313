from .incomplete import gammainc
