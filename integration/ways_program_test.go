package integration

// programWays are those of programs that copy, edit and unpack (F4 of the pains).
var programWays = []way{
	{"cp", `echo "$A" > $T/f; cp $T/f $M/f; cp $T/f $M`, "aa"},
	{"cp -p", `echo "$A" > $T/f; chmod 640 $T/f; touch -d 2020-01-01 $T/f; cp -p $T/f $M/f`, "a"},
	{"cp -a", `echo "$A" > $T/f; touch -d 2020-01-01 $T/f; cp -a $T/f $M/f`, "a"},
	{"cp -a of a directory", `mkdir $T/d; echo "$A" > $T/d/f; cp -a $T/d $M; rmdir $M/d`, "a"},
	{"cp --remove-destination", `echo "$A" > $T/f; cp --remove-destination $T/f $M/f`, "a"},
	{"cp --sparse", `echo "$A" > $T/f; cp --sparse=always $T/f $M/f`, "a"},
	{"mv", `echo "$A" > $T/f; mv $T/f $M/f; [ ! -e $T/f ]`, "a"},
	{"mv to the same name", `echo "$A" > $T/f; echo "$B" > $T/g; mv $T/f $M/f; mv -f $T/g $M/f`, "ab"},
	{"install", `echo "$A" > $T/f; install -m 600 $T/f $M/f`, "a"},
	{"install -D", `echo "$A" > $T/f; install -D -p $T/f $M/d/f; rmdir $M/d`, "a"},
	{"dd", `echo "$A" | dd of=$M/f bs=7 status=none`, "a"},
	{"dd a byte at a time", `echo "$A" | dd of=$M/f bs=1 status=none`, "a"},
	{"dd conv=fsync,notrunc", `echo "$A" | dd of=$M/f conv=fsync,notrunc status=none`, "a"},
	{"dd conv=fdatasync,excl", `echo "$A" | dd of=$M/f conv=fdatasync,excl status=none`, "a"},
	{"dd oflag=sync", `echo "$A" | dd of=$M/f bs=50 oflag=sync status=none`, "a"},
	{"dd oflag=append", `(echo "$A"; echo "$B") | dd of=$M/f bs=9 oflag=append conv=notrunc status=none`, "ab"},
	{"dd oflag=direct", `echo "$A" | dd of=$M/f bs=4k iflag=fullblock oflag=direct status=none`, "a"},
	{"tee", `(echo "$A"; echo "$B") | tee $M/f > /dev/null`, "ab"},
	{"tee two files", `echo "$A" | tee $M/f $M/g > /dev/null`, "aa"},
	{"tee append", `echo "$A" | tee -a $M/f > /dev/null; echo "$B" | tee -a $M/f > /dev/null`, "ab"},
	{"touch", `touch $M/f; touch -d 2020-01-01 $M/g`, ""},
	{"truncate", `truncate -s 0 $M/f`, ""},
	{"rsync", `echo "$A" > $T/f; rsync $T/f $M/f; rsync -a $T/f $M/f`, "aa"},
	{"rsync -a of a directory", `mkdir $T/d; echo "$A" > $T/d/f; rsync -a $T/d $M; rmdir $M/d`, "a"},
	{"rsync --inplace", `echo "$A" > $T/f; rsync --inplace $T/f $M/f; rsync -a --inplace $T/f $M/f`, "aa"},
	{"rsync --append", `echo "$A" > $T/f; rsync --append $T/f $M/f`, "a"},
	{"scp", `echo "$A" > $T/f; scp -q -p -D ` + sftpServer + ` $T/f localhost:$M/f`, "a"},
	{"sftp", `echo "$A" > $T/f; echo "put $T/f $M/f" | sftp -q -b - -D ` + sftpServer + ` > /dev/null`, "a"},
	{"sftp and rename", `echo "$A" > $T/f
printf '%s\n' "put -p $T/f $M/f.part" "rename $M/f.part $M/f" | sftp -q -b - -D ` + sftpServer + ` > /dev/null`, "a"},
	{"sed w", `(echo "$A"; echo "$B") | sed -n "w $M/f"`, "ab"},
	// sed's own temporary file has an ordinary name: it is published, and takes
	// the place of the one that it was made from.
	{"sed -i", `(echo "$A"; echo "$B") > $M/.f; sed -i 's,d/a,d/c,' $M/.f; [ ! -e $M/.f ]`, "cb"},
	{"sed -i with a copy", `echo "$A" > $M/.f; sed -i.tmp 's,d/a,d/c,' $M/.f; mv $M/.f.tmp $M/f; [ ! -e $M/.f ]`, "ca"},
	{"ed", `printf '%s\n' a "$A" . "w $M/f" q | ed -s`, "a"},
	{"ed of a temporary file", `echo "$A" > $M/f.tmp; printf '%s\n' 's,d/a,d/c,' w q | ed -s $M/f.tmp; mv $M/f.tmp $M/f`, "c"},
	{"vim", `vim -es -u NONE -c "call setline(1, \$A)" -c wq $M/f`, "a"},
	{"vim writes twice", `vim -es -u NONE -c "set backup" -c "call setline(1, \$A)" -c w -c "call setline(1, \$B)" -c wq $M/f`, "ab"},
	{"vim of a temporary file", `echo "$A" > $M/f.tmp; vim -es -u NONE -c 's,d/a,d/c,' -c wq $M/f.tmp; mv $M/f.tmp $M/f`, "c"},
	{"tar", `mkdir $T/d; echo "$A" > $T/d/f; tar -C $T -c d | tar -C $M -x; rmdir $M/d`, "a"},
	{"sort -o", `(echo "$B"; echo "$A") | sort -o $M/f`, "ab"},
	{"split", `(echo "$A"; echo "$B") | split -l 1 - $M/f`, "ab"},
	{"awk", `(echo "$A"; echo "$B") | awk -v f=$M/f '{ print > f }'`, "ab"},
	{"awk closes", `(echo "$A"; echo "$B") | awk -v f=$M/f '{ print > f; close(f) }'`, "ab"},
	{"perl", `perl -e 'open(my $f, ">", "$ENV{M}/f") or die $!; print $f "$ENV{A}\n$ENV{B}\n"; close($f) or die $!'`, "ab"},
	{"perl with autoflush", `perl -MIO::Handle -e 'open(my $f, ">>", "$ENV{M}/f") or die $!; $f->autoflush; print $f "$_\n" for @ENV{"A", "B"}'`, "ab"},
	{"odd name", `echo "$A" > "$M/"$'a \xff\n*'`, "a"},
}

// sftpServer stands for a host at the other end of a network.
const sftpServer = "/usr/lib/openssh/sftp-server"
