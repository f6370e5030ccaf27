"""Reading of untrusted volumes: NIfTI, DICOM series, MetaImage, all converted to one orientation."""

from medtest.volumes.orientation import VolumeInfo
from medtest.volumes.reading import Volume, read_labels, read_volume, volume_info

__all__ = ["Volume", "VolumeInfo", "read_labels", "read_volume", "volume_info"]
