"""Reading of untrusted volumes: NIfTI, DICOM series, MetaImage, all converted to one orientation."""

from medtest.volumes.orientation import VolumeInfo
from medtest.volumes.reading import read_labels, read_volume, volume_info

__all__ = ["VolumeInfo", "read_labels", "read_volume", "volume_info"]
