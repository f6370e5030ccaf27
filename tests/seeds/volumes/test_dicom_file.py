"""DICOM files as images, as masks and as seeds; no tag of theirs is shown."""

from __future__ import annotations

import io
import logging

import numpy as np
import pytest
from layout_files import source
from PIL import Image as Pillow
from volume_parts import CANARY, volume, write_nifti

from medtest.core.errors import UserMistakes
from medtest.core.files.images import BadFileError
from medtest.seeds.volumes.dicom_file import dicom_mask, dicom_rgb, dicom_shape

pydicom = pytest.importorskip("pydicom")
nibabel = pytest.importorskip("nibabel")


BOUND = 64_000_000


def write_dicom(path, values, *, kind="MONOCHROME2", bits=None, frames=1, syntax=None, encapsulated=None, **tags):
    """Write a DICOM file whose patient is a canary."""
    from pydicom.dataset import FileDataset, FileMetaDataset
    from pydicom.encaps import encapsulate
    from pydicom.uid import ExplicitVRLittleEndian, SecondaryCaptureImageStorage, generate_uid

    path.parent.mkdir(parents=True, exist_ok=True)
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = SecondaryCaptureImageStorage
    meta.MediaStorageSOPInstanceUID = generate_uid()
    meta.TransferSyntaxUID = syntax or ExplicitVRLittleEndian
    data = FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    data.SOPClassUID = SecondaryCaptureImageStorage
    data.SOPInstanceUID = meta.MediaStorageSOPInstanceUID
    data.PatientName = CANARY
    data.PatientID = f"{CANARY}-id"
    data.InstitutionName = CANARY
    colour = kind in ("RGB", "YBR_FULL", "YBR_FULL_422")
    shape = values.shape[1:] if frames > 1 else values.shape
    data.Rows, data.Columns = shape[0], shape[1]
    data.SamplesPerPixel = 3 if colour else 1
    if colour:
        data.PlanarConfiguration = 0
    data.PhotometricInterpretation = kind
    data.BitsAllocated = 8 * values.dtype.itemsize
    data.BitsStored = bits or data.BitsAllocated
    data.HighBit = data.BitsStored - 1
    data.PixelRepresentation = int(values.dtype.kind == "i")
    if frames > 1:
        data.NumberOfFrames = frames
    for name, value in tags.items():
        setattr(data, name, value)
    data.PixelData = values.tobytes() if encapsulated is None else encapsulate(encapsulated)
    if encapsulated is not None:
        data["PixelData"].is_undefined_length = True
    data.save_as(path, enforce_file_format=True)


def ramp(low=0, high=255, shape=(24, 32), dtype=np.uint8):
    return np.linspace(low, high, shape[0] * shape[1]).round().astype(dtype).reshape(shape)


def rgb(path, index=0, **options):
    return dicom_rgb(path, index, max_pixels=BOUND, **options)


# --------------------------------------------------------------------------------------------------- DICOM's pixels


def test_grey_of_eight_bits_is_unchanged_and_monochrome1_inverted(tmp_path):
    values = ramp()
    write_dicom(tmp_path / "a.dcm", values)
    write_dicom(tmp_path / "b.dcm", values, kind="MONOCHROME1")
    assert np.array_equal(rgb(tmp_path / "a.dcm")[..., 1], values)
    assert np.array_equal(rgb(tmp_path / "b.dcm")[..., 0], 255 - values)


def test_window_of_sixteen_bits_by_hand(tmp_path):
    values = np.array([[0, 924, 1024, 1124, 4095]], dtype=np.uint16).repeat(4, 0)
    tags = {"RescaleSlope": "1", "RescaleIntercept": "-1024", "WindowCenter": "0", "WindowWidth": "201"}
    write_dicom(tmp_path / "ct.dcm", values, bits=12, **tags)
    # PS3.3 C.11.2.1.2.1: ((x - (c - 0.5)) / (w - 1) + 0.5) * 255 with x = -100, 0, 100
    expected = [0, round(0.0025 * 255), round(0.5025 * 255), 255, 255]
    assert rgb(tmp_path / "ct.dcm")[0, :, 0].tolist() == expected
    wide = rgb(tmp_path / "ct.dcm", window=(1024.0, 4096.0))
    assert wide[0, 0, 0] == 0
    assert 60 < wide[0, 2, 0] < 68


@pytest.mark.parametrize("function", ["LINEAR", "LINEAR_EXACT", "SIGMOID"])
def test_windows_agree_with_pydicom(tmp_path, function):
    values = ramp(0, 4095, dtype=np.uint16)
    tags = {"WindowCenter": "1800", "WindowWidth": "900", "VOILUTFunction": function}
    write_dicom(tmp_path / "w.dcm", values, bits=12, **tags)
    data = pydicom.dcmread(tmp_path / "w.dcm")
    expected = pydicom.pixels.apply_windowing(values, data) / 4095 * 255
    assert np.abs(rgb(tmp_path / "w.dcm")[..., 0].astype(float) - expected).max() <= 0.51


def test_sixteen_bits_without_window_reach_from_black_to_white(tmp_path):
    values = ramp(500, 3000, dtype=np.int16)
    values[0, 0] = -2000
    write_dicom(tmp_path / "a.dcm", values, PixelPaddingValue=-2000)
    shown = rgb(tmp_path / "a.dcm")[..., 0]
    assert (shown[0, 1], shown[-1, -1], shown[0, 0]) == (0, 255, 0)


def test_colours(tmp_path):
    from pydicom.pixels import convert_color_space

    colour = np.stack([ramp(), ramp(255, 0), np.full((24, 32), 90, np.uint8)], axis=-1)
    write_dicom(tmp_path / "rgb.dcm", colour, kind="RGB")
    assert np.array_equal(rgb(tmp_path / "rgb.dcm"), colour)
    full = convert_color_space(colour, "RGB", "YBR_FULL")
    write_dicom(tmp_path / "ybr.dcm", full, kind="YBR_FULL")
    assert np.abs(rgb(tmp_path / "ybr.dcm").astype(int) - colour).max() <= 2
    # 4:2:2: two luminances, then the chrominances they share.
    pairs = full.reshape(24, 16, 2, 3)
    packed = np.stack([pairs[..., 0, 0], pairs[..., 1, 0], pairs[..., 0, 1], pairs[..., 0, 2]], axis=-1)
    write_dicom(tmp_path / "422.dcm", np.zeros((24, 32, 3), np.uint8), kind="YBR_FULL_422")
    data = pydicom.dcmread(tmp_path / "422.dcm")
    data.PixelData = packed.astype(np.uint8).tobytes()
    data.save_as(tmp_path / "422.dcm")
    assert np.abs(rgb(tmp_path / "422.dcm").astype(int) - colour).max() <= 6


def test_palette(tmp_path):
    table = np.arange(256, dtype=np.uint16)
    tags = {}
    for name, entries in (("Red", table << 8), ("Green", (255 - table) << 8), ("Blue", np.full(256, 77 << 8))):
        tags[f"{name}PaletteColorLookupTableDescriptor"] = [256, 0, 16]
        tags[f"{name}PaletteColorLookupTableData"] = entries.astype("<u2").tobytes()
    values = ramp()
    write_dicom(tmp_path / "p.dcm", values, kind="PALETTE COLOR", **tags)
    assert np.array_equal(rgb(tmp_path / "p.dcm"), np.stack([values, 255 - values, np.full_like(values, 77)], -1))


def test_jpeg_inside_dicom_and_a_missing_decoder(tmp_path):
    from pydicom.uid import JPEGBaseline8Bit, JPEGLSLossless

    buffer = io.BytesIO()
    Pillow.fromarray(ramp()).save(buffer, "JPEG", quality=100)
    write_dicom(tmp_path / "j.dcm", ramp(), syntax=JPEGBaseline8Bit, encapsulated=[buffer.getvalue()])
    assert np.abs(rgb(tmp_path / "j.dcm")[..., 0].astype(int) - ramp()).max() <= 3
    if not pydicom.pixels.get_decoder(JPEGLSLossless).is_available:
        write_dicom(tmp_path / "ls.dcm", ramp(), syntax=JPEGLSLossless, encapsulated=[b"\xff\xd8\xff\xd9"])
        with pytest.raises(BadFileError, match="JPEG-LS Lossless.*no decoder is installed.*pip install pylibjpeg"):
            rgb(tmp_path / "ls.dcm")


# ---------------------------------------------------------------------------------------------------- DICOM's bounds


def test_bounds_before_decoding(tmp_path, monkeypatch):
    write_dicom(tmp_path / "a.dcm", ramp())
    data = pydicom.dcmread(tmp_path / "a.dcm")
    data.Rows = data.Columns = 60_000
    data.save_as(tmp_path / "large.dcm")
    data.Rows, data.Columns, data.NumberOfFrames = 24, 32, 2_000_000
    data.save_as(tmp_path / "long.dcm")
    monkeypatch.setattr(pydicom.pixels, "pixel_array", lambda *a, **k: pytest.fail("decoded"))
    with pytest.raises(BadFileError, match="60000×60000, 3600.0 Mpixel; the bound is 64 Mpixel"):
        rgb(tmp_path / "large.dcm")
    with pytest.raises(BadFileError, match="2,000,000 frames"):
        dicom_shape(tmp_path / "long.dcm", max_pixels=BOUND)


def test_files_without_an_image_are_mistakes(tmp_path):
    from pydicom.uid import DeflatedExplicitVRLittleEndian

    write_dicom(tmp_path / "cut.dcm", ramp())
    (tmp_path / "cut.dcm").write_bytes((tmp_path / "cut.dcm").read_bytes()[:-300])
    with pytest.raises(BadFileError, match="cannot be decoded"):
        rgb(tmp_path / "cut.dcm")
    (tmp_path / "text.dcm").write_text("nothing")
    with pytest.raises(BadFileError, match="not a DICOM file"):
        rgb(tmp_path / "text.dcm")
    write_dicom(tmp_path / "deflated.dcm", ramp(), syntax=DeflatedExplicitVRLittleEndian)
    with pytest.raises(BadFileError, match="deflated"):
        rgb(tmp_path / "deflated.dcm")
    write_dicom(tmp_path / "seg.dcm", ramp())
    data = pydicom.dcmread(tmp_path / "seg.dcm")
    data.SOPClassUID = "1.2.840.10008.5.1.4.1.1.66.4"
    data.save_as(tmp_path / "seg.dcm")
    with pytest.raises(BadFileError, match="DICOM SEG"):
        rgb(tmp_path / "seg.dcm")


@pytest.mark.parametrize(("values", "lesion"), [([0, 1], [0, 1]), ([0, 4095], [0, 1]), ([3, 100, 250], [0, 0, 1])])
def test_masks_of_labels_two_values_and_grey(tmp_path, values, lesion):
    array = np.array([values], dtype=np.uint16).repeat(2, 0)
    write_dicom(tmp_path / "m.dcm", array)
    assert dicom_mask(tmp_path / "m.dcm", 0, max_pixels=BOUND)[0].astype(int).tolist() == lesion


def test_several_labels_are_refused_until_one_is_named(tmp_path):
    write_dicom(tmp_path / "m.dcm", np.array([[0, 1, 2]], dtype=np.uint16).repeat(2, 0))
    with pytest.raises(BadFileError, match=r"several labels \(1, 2\); label_values"):
        dicom_mask(tmp_path / "m.dcm", 0, max_pixels=BOUND)
    assert dicom_mask(tmp_path / "m.dcm", 0, max_pixels=BOUND, values=(2,))[0].tolist() == [False, False, True]


# ----------------------------------------------------------------------------------------------------- DICOM as seeds


def truth(path, area=10, shape=(24, 32)):
    path.parent.mkdir(parents=True, exist_ok=True)
    mask = np.zeros(shape, np.uint8)
    mask.ravel()[:area] = 255
    Pillow.fromarray(mask).save(path)


def test_dicom_images_beside_png_masks(tmp_path):
    write_dicom(tmp_path / "images" / "a.dcm", ramp())
    write_dicom(tmp_path / "images" / "1.2.840.7", ramp(255, 0))  # as archives name them
    truth(tmp_path / "masks" / "a.png", 7)
    truth(tmp_path / "masks" / "1.2.840.7.png", 9)
    seeds = source(tmp_path)
    by_id = {ref.seed_id: seeds.load(ref) for ref in seeds.refs()}
    assert {name: int(seed.expected.sum()) for name, seed in by_id.items()} == {"a": 7, "1.2.840.7": 9}
    assert np.array_equal(by_id["a"].image[..., 0], ramp())


def test_frames_are_seeds_of_one_cluster_and_those_without_lesion_are_left_out(tmp_path):
    video = np.stack([np.full((24, 32), 40 * n, np.uint8) for n in range(4)])
    masks = np.zeros((4, 24, 32), np.uint8)
    masks[1, 0, :3], masks[3, 0, :8] = 1, 1
    write_dicom(tmp_path / "images" / "clip.dcm", video, frames=4)
    write_dicom(tmp_path / "masks" / "clip.dcm", masks, frames=4)
    seeds = source(tmp_path)
    assert [(ref.seed_id, ref.cluster) for ref in seeds.refs()] == [("clip_f0002", "clip"), ("clip_f0004", "clip")]
    last = seeds.load(seeds.refs()[1])
    assert (last.image[0, 0].tolist(), int(last.expected.sum())) == ([120, 120, 120], 8)
    assert len(source(tmp_path, negatives=True).refs()) == 4
    assert [r.seed_id for r in source(tmp_path, slices="largest").refs()] == ["clip_f0004"]
    assert [r.seed_id for r in source(tmp_path, negatives=True, every=2).refs()] == ["clip_f0001", "clip_f0003"]
    assert len(source(tmp_path, labels="none").refs()) == 4
    truth(tmp_path / "masks" / "clip.png")
    (tmp_path / "masks" / "clip.dcm").unlink()
    with pytest.raises(UserMistakes, match="holds 1 images, but its image file holds 4"):
        source(tmp_path).refs()


def test_no_tag_is_ever_shown(tmp_path, caplog, capsys, recwarn):
    """The canary is in headers of good and of broken files; no output of the source holds it."""
    for number in range(3):
        write_dicom(tmp_path / "images" / f"{number}.dcm", ramp(), StudyDate="not a date", PatientAge=f"{CANARY}")
        truth(tmp_path / "masks" / f"{number}.png")
    broken = tmp_path / "images" / "1.dcm"
    broken.write_bytes(broken.read_bytes()[:-90])
    data = pydicom.dcmread(tmp_path / "images" / "2.dcm")
    data.PhotometricInterpretation = CANARY[:16].upper().replace("^", "_")
    data.save_as(tmp_path / "images" / "2.dcm")
    caplog.set_level(logging.DEBUG)
    recwarn.clear()
    with pytest.raises(UserMistakes) as caught:
        source(tmp_path).refs()
    seeds = source(tmp_path, on_bad_seed="skip")
    seed = seeds.load(seeds.refs()[0])
    out = capsys.readouterr()
    everything = [str(caught.value), caplog.text, out.out, out.err, repr(seeds.refs()), repr(seeds.problems())]
    everything += [repr(seed.ref), repr(seed.spec), seeds.digest(), *(str(w.message) for w in recwarn)]
    assert len(seeds.refs()) == 1
    assert not [text for text in everything if "CANARY" in text.upper()]


def test_without_the_library_the_message_names_the_extra(tmp_path, monkeypatch):
    import sys

    from medtest.volumes.libraries import nibabel_library, pydicom_library

    write_nifti(tmp_path / "n" / "v.nii", volume())
    write_dicom(tmp_path / "d" / "v.dcm", ramp())
    for library, name, folder in ((nibabel_library, "nibabel", "n"), (pydicom_library, "pydicom", "d")):
        library.cache_clear()
        monkeypatch.setitem(sys.modules, name, None)
        try:
            with pytest.raises(UserMistakes, match=r"pip install 'medtest\["):
                source(tmp_path / folder, labels="none").refs()
        finally:
            monkeypatch.undo()
            library.cache_clear()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_tag_in_any_file_of_a_run(tmp_path, monkeypatch, capfd):
    """A whole run with MLflow and hashed ids over DICOM and NIfTI: no file of it holds the canary or a file's name."""
    from medtest.cli.run.launch import main
    from medtest.phantoms.colon import make_colon

    phantom = make_colon(np.random.default_rng(1), size=(96, 128), polyps=1)
    colour = np.ascontiguousarray(phantom.image)
    for name in ("HOLLINGSWORTH^JANE", "WINTERBOTTOM^RICHARD"):
        write_dicom(tmp_path / "data" / "images" / f"{name}.dcm", colour, kind="RGB")
        (tmp_path / "data" / "masks").mkdir(exist_ok=True)
        Pillow.fromarray(phantom.mask.astype(np.uint8) * 255).save(tmp_path / "data" / "masks" / f"{name}.png")
    volume_, labels = colour[..., :1].copy(), phantom.mask[..., None].astype(np.uint8)
    write_nifti(tmp_path / "data" / "images" / "FEATHERSTONE^EDGAR.nii.gz", volume_)
    write_nifti(tmp_path / "data" / "masks" / "FEATHERSTONE^EDGAR.nii.gz", labels)
    monkeypatch.setenv("MEDTEST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MEDTEST_HASH_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.chdir(tmp_path)
    tokens = ["suite=polyp_seg_folder", f"data={tmp_path / 'data'}", "model=pranet", "only=relation:text"]
    code = main([*tokens, "privacy.seed_ids=hashed"])
    out = capfd.readouterr()
    assert code == 0, out.err
    texts = [out.out.encode(), out.err.encode()]
    texts += [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert len(texts) > 10
    # Long names: four letters occur by chance in a picture that a page holds as text.
    for secret in (b"CANARYNAME", b"HOLLINGSWORTH", b"WINTERBOTTOM", b"FEATHERSTONE"):
        assert not [text[:80] for text in texts if secret in text.upper()]
