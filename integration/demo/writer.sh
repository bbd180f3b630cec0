# Writes files as a short-lived shell program does: echo into a new file.
# Arguments: directory, number of this writer, first file, number of files.
set -e
echo ready
read -r || true # until the demo lets all writers go at once
for ((n = $3; n < $3 + $4; n++)); do
  printf -v path 'run/%03d/f%05d.grib2' "$2" "$n"
  echo '{"pubTime": "20261130T070000.000", "baseUrl": "http://node.example.org", "relPath": "'"$path"'", "size": "1"}' \
    > "$1/post_retry.$HOSTNAME.$$.$n"
done
