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
})
