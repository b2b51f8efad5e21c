/* SPDX-License-Identifier: MIT */
/* errors.c - texts of errors, in glibc's words: those that making a shelf or starting a program can meet. */
#include <errno.h>
#include <string.h>

#include "base/base.h"

static const struct {
	int err;
	const char *text;
} texts[] = {
	{EPERM, "Operation not permitted"},
	{ENOENT, "No such file or directory"},
	{EINTR, "Interrupted system call"},
	{EIO, "Input/output error"},
	{E2BIG, "Argument list too long"},
	{ENOEXEC, "Exec format error"},
	{EBADF, "Bad file descriptor"},
	{EAGAIN, "Resource temporarily unavailable"},
	{ENOMEM, "Cannot allocate memory"},
	{EACCES, "Permission denied"},
	{EFAULT, "Bad address"},
	{EBUSY, "Device or resource busy"},
	{EEXIST, "File exists"},
	{ENODEV, "No such device"},
	{ENOTDIR, "Not a directory"},
	{EISDIR, "Is a directory"},
	{EINVAL, "Invalid argument"},
	{ENFILE, "Too many open files in system"},
	{EMFILE, "Too many open files"},
	{ETXTBSY, "Text file busy"},
	{EFBIG, "File too large"},
	{ENOSPC, "No space left on device"},
	{EROFS, "Read-only file system"},
	{EMLINK, "Too many links"},
	{ENAMETOOLONG, "File name too long"},
	{ENOSYS, "Function not implemented"},
	{ELOOP, "Too many levels of symbolic links"},
	{ENODATA, "No data available"},
	{EOVERFLOW, "Value too large for defined data type"},
	{ELIBBAD, "Accessing a corrupted shared library"},
	{EOPNOTSUPP, "Operation not supported"},
	{EADDRINUSE, "Address already in use"},
	{ESTALE, "Stale file handle"},
	{EDQUOT, "Disk quota exceeded"},
};

const char *strerrordesc_np(int err)
{
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (texts[i].err == err)
			return texts[i].text;
	return NULL;
}
