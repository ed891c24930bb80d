import { defineErrors } from '../errors/define-errors.ts'

/** Errors of the network of this host. */
export const networkErrors = defineErrors({
  NetworkUnreadable: {
    status: 500,
    meaning: 'The links of this host cannot be read; the message says what failed.',
    action: 'Try ip -json address show on the host, and see the journal of edgehostd.',
  },
})
