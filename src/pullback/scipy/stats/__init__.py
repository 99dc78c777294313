from .continuous import *
