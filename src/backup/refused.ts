/** A backup or a restore that is not made; the message says why, and what to do. Nothing was changed. */
export class BackupRefused extends Error {
  override readonly name = 'BackupRefused'
}

/** The state is from the backup, and not all other files are; the message says which. */
export class RestoredInPart extends Error {
  override readonly name = 'RestoredInPart'
}
