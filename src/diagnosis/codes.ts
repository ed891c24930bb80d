import { defineErrors } from '../errors/define-errors.ts'

/** Errors of the diagnosis of this host. */
export const diagnosisErrors = defineErrors({
  ToolMissing: {
    status: 409,
    meaning: 'A program that the diagnosis needs is not installed; details.tool and details.package name it.',
    action: 'Install the package.',
  },
  DiagnosisBusy: {
    status: 429,
    meaning: 'As many diagnoses, or followers of the logs, run at the same time as are allowed.',
    action: 'Wait until one has ended.',
  },
  FileNotReadable: {
    status: 409,
    meaning:
      'The file is there, but the daemon may not read it: it is root without special rights, so the mode of the file decides.',
    action: 'Let others read it (chmod o+r), or give it to root (chown root).',
  },
})
