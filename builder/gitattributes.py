"""`.gitattributes` as the Hub makes it for a new dataset: which files are stored with git-lfs."""

from __future__ import annotations

_PATTERNS = (
    "*.7z *.arrow *.avro *.bin *.bz2 *.ckpt *.ftz *.gz *.h5 *.joblib *.lfs.* *.lz4 *.mds *.mlmodel *.model *.msgpack "
    "*.npy *.npz *.onnx *.ot *.parquet *.pb *.pickle *.pkl *.pt *.pth *.rar *.safetensors saved_model/**/* *.tar.* "
    "*.tar *.tflite *.tgz *.wasm *.xz *.zip *.zst *tfevents* "
    "*.pcm *.sam *.raw *.aac *.flac *.mp3 *.ogg *.wav *.bmp *.gif *.png *.tiff *.jpg *.jpeg *.webp *.mp4 *.webm"
).split()

TEXT = "".join(f"{pattern} filter=lfs diff=lfs merge=lfs -text\n" for pattern in _PATTERNS)
