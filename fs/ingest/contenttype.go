package ingest

import "strings"

// unknownContent is the content type of bytes that nothing is known of.
const unknownContent = "application/octet-stream"

// contentTypes are content types by the extension of a name. The table is ours
// and not the machine's, so that a file has the same one everywhere.
var contentTypes = map[string]string{
	"bufr": "application/bufr", "bz2": "application/x-bzip2", "csv": "text/csv", "geojson": "application/geo+json",
	"gif": "image/gif", "grib": "application/grib", "grib2": "application/grib", "gz": "application/gzip",
	"h5": "application/x-hdf5", "htm": "text/html", "html": "text/html", "jpeg": "image/jpeg", "jpg": "image/jpeg",
	"json": "application/json", "jsonl": "application/x-ndjson", "log": "text/plain", "md": "text/markdown",
	"nc": "application/x-netcdf", "ndjson": "application/x-ndjson", "pdf": "application/pdf", "png": "image/png",
	"svg": "image/svg+xml", "tar": "application/x-tar", "tif": "image/tiff", "tiff": "image/tiff", "txt": "text/plain",
	"xml": "application/xml", "xz": "application/x-xz", "yaml": "application/yaml", "yml": "application/yaml",
	"zip": "application/zip", "zst": "application/zstd",
}

// contentType is the content type of a file of that name.
func contentType(name string) string {
	if t, ok := contentTypes[strings.ToLower(extension(name))]; ok {
		return t
	}
	return unknownContent
}
