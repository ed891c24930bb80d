import { defineErrors } from '../errors/define-errors.ts'

/** Errors of the content of this host. */
export const contentErrors = defineErrors({
  ContentInUse: {
    status: 409,
    meaning:
      'The bundle cannot be deleted, because something on this host needs it; details.holders names it.',
    action: 'Stop what needs it, then delete the bundle again.',
  },
  ContentUnavailable: {
    status: 503,
    meaning: 'The folder of the content cannot be read or written.',
    action:
      'See journalctl -u edgehostd -p warning and docs/operations.md, "Content"; the next request tries again.',
  },
  BlobBusy: {
    status: 409,
    meaning: 'Another request is sending the same blob to the same upload.',
    action: 'Wait until it has ended; one whose connection is gone ends after a while.',
  },
  BlobsMissing: {
    status: 409,
    meaning:
      'The upload cannot be published: blobs are missing. details.missing lists the first of them, details.missingBlobs and details.missingBytes count all.',
    action: 'Send what GET /v1/edge-mgmt/content/uploads/{uid}/missing lists, then publish again.',
  },
  DigestMismatch: {
    status: 400,
    meaning: 'The bytes of a blob do not have its digest; those that were held have been thrown away.',
    action: 'Send the blob again from its beginning; if this happens again, check the file with sha256sum.',
  },
  UploadBusy: {
    status: 409,
    meaning: 'The upload is being published.',
    action: 'Wait until that has ended.',
  },
  WrongOffset: {
    status: 416,
    meaning:
      'The range does not begin where the held bytes of the blob end. The header Upload-Offset and details.offset say where that is.',
    action: 'Send the blob from that offset on.',
  },
})
