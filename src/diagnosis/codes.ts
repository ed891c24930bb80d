import { defineErrors } from '../errors/define-errors.ts'

/** Errors of the diagnosis of this host. */
export const diagnosisErrors = defineErrors({
  FileNotReadable: {
    status: 409,
    meaning:
      'The file is there, but the daemon may not read it: it is root without special rights, so the mode of the file decides.',
    action: 'Let others read it (chmod o+r), or give it to root (chown root).',
  },
})
