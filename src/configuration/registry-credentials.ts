// The login to a registry of others that user data has. Pure.

import { isMask, masked } from '../base/mask.ts'
import type { ExternalRegistry } from '../content/registry/external-registry.ts'
import { refusedField, refuseUnknownFields } from '../errors/refused-field.ts'
import { readAuthorityList } from './authorities.ts'
import type { RegistryCredentials } from './schemas.ts'

const fields = [
  ...(['certificates', 'domain', 'encodedPassword', 'insecure', 'password'] as const),
  ...(['repositoryName', 'username'] as const),
]
const longest = 1_024
const path = 'registryCredentials'

/** A name or an address of IPv4, perhaps with a port: the folder of containerd has it as its name, and so has a table of TOML. */
const domainForm = /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[1-9]\d{0,4})?$/

/**
 * Reads credentials as a user sends them. Empty counts as not given.
 * @param present whose password stands in for a mask
 * @param now milliseconds since 1970
 * @returns undefined where nothing is given: there is no such registry then
 * @throws AppError BadRequest that names the field
 */
export function readRegistryCredentials(
  sent: RegistryCredentials,
  present: ExternalRegistry | undefined,
  now: number,
): ExternalRegistry | undefined {
  refuseUnknownFields(sent, fields, `${path}.`, 'registry credentials')
  const { certificates = [], domain = '', encodedPassword = false, insecure = false } = sent
  const { password = '', repositoryName = '', username = '' } = sent
  const refuse = (field: keyof RegistryCredentials, reason: string) =>
    refusedField(`${path}.${field}`, reason)
  if (repositoryName !== '')
    throw refuse('repositoryName', 'cannot be applied: a login counts for a whole registry; leave it out')
  if (domain === '') {
    const [given] = Object.entries({ username, password, insecure, certificates }).filter(
      ([, value]) => value !== '' && value !== false && !(Array.isArray(value) && value.length === 0),
    )
    if (given === undefined) return undefined
    throw refuse('domain', `is missing: ${given[0]} is for a registry, as registry.example:5000`)
  }
  const [, port] = domain.split(':')
  if (!domainForm.test(domain) || Number(port ?? 1) > 65_535 || domain.includes('..'))
    throw refuse(
      'domain',
      'has to be a name or an address of IPv4, perhaps with a port, in small letters, without a scheme and a path: registry.example:5000',
    )
  for (const [field, text] of Object.entries({ username, password }) as ['username' | 'password', string][]) {
    if (text.length > longest) throw refuse(field, `is longer than ${longest} characters`)
    if (/\p{Cc}/u.test(text)) throw refuse(field, 'has a control character')
  }
  if (username === '' && password !== '') throw refuse('username', 'is missing, and there is a password')
  if (username.includes(':')) throw refuse('username', 'has a colon, which no login of HTTP can have')
  if (username !== '' && password === '') throw refuse('password', 'is missing, and there is a username')
  return {
    domain,
    username,
    password: passwordOf(),
    certificates: readAuthorityList(certificates, `${path}.certificates`, now),
    isInsecure: insecure,
  }

  function passwordOf(): string {
    if (password !== '' && isMask(password)) {
      // Another registry or user would get a password that was not meant for it.
      if (present?.domain === domain && present.username === username) return present.password
      throw refuse(
        'password',
        'is a mask, and the present credentials have another domain or username; send the password',
      )
    }
    if (!encodedPassword || password === '') return password
    const decoded = Buffer.from(password, 'base64')
    const text = decoded.toString()
    if (decoded.toString('base64').replace(/=+$/, '') !== password.replace(/=+$/, '') || /\p{Cc}/u.test(text))
      throw refuse('password', 'is not base64 of a text, and encodedPassword is true')
    return text
  }
}

/** The credentials in a reply, with a mask; undefined without any. */
export const shownCredentials = (registry: ExternalRegistry | undefined): RegistryCredentials | undefined =>
  registry && {
    domain: registry.domain,
    insecure: registry.isInsecure,
    ...(registry.username === '' ? {} : { username: registry.username, password: masked }),
    ...(registry.certificates.length === 0
      ? {}
      : { certificates: registry.certificates.map((pem) => Buffer.from(pem).toString('base64')) }),
  }
