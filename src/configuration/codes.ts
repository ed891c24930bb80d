import { defineErrors } from '../errors/define-errors.ts'

/** Refusals of the configuration of this host. */
export const configurationErrors = defineErrors({
  AuthoritiesUnsupported: {
    status: 409,
    meaning: 'This host has no program that makes certificates known to it.',
    action: 'Install the package ca-certificates, or send the configuration without caCerts.',
  },
})
