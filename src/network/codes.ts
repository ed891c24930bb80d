import { defineErrors } from '../errors/define-errors.ts'

/** Errors of the network of this host. */
export const networkErrors = defineErrors({
  NetworkLinkExists: {
    status: 409,
    meaning: 'This host has a link of this name already.',
    action: 'Replace it with PUT, or choose another name.',
  },
  NetworkUnreadable: {
    status: 500,
    meaning: 'The links of this host cannot be read; the message says what failed.',
    action: 'Try ip -json address show on the host, and see the journal of edgehostd.',
  },
})
