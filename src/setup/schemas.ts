import { Type, type Static } from 'typebox'

export const HostName = Type.Object(
  { hostName: Type.String({ description: 'The present one.' }) },
  { title: 'HostName' },
)
export type HostName = Static<typeof HostName>

/** Body of `PUT …/hostname`. */
export const HostNameRequest = Type.Object(
  {
    hostName: Type.String({
      description:
        'A name as of RFC 1123 in lower case, at most 64 characters: labels of letters, digits and -, with dots between.',
    }),
  },
  { title: 'HostNameRequest' },
)
export type HostNameRequest = Static<typeof HostNameRequest>

export const HostTime = Type.Object(
  {
    ntpServers: Type.Array(Type.String(), {
      description: 'The time servers that were set here; those in use are in the document of the host.',
    }),
    service: Type.Optional(
      Type.String({ description: 'The time service that takes them; absent where they cannot be set.' }),
    ),
    problem: Type.Optional(Type.String({ description: 'Why they cannot be set, and what to do.' })),
  },
  { title: 'HostTime' },
)
export type HostTime = Static<typeof HostTime>

/** Body of `PUT …/time`. */
export const HostTimeRequest = Type.Object(
  {
    ntpServers: Type.Array(Type.String({ maxLength: 253 }), {
      maxItems: 32,
      description: 'Names or addresses; empty: those that were set here are taken away.',
    }),
  },
  { title: 'HostTimeRequest' },
)
export type HostTimeRequest = Static<typeof HostTimeRequest>
