import { Type, type Static } from 'typebox'
import { InterfaceOfUserData } from '../network/schemas.ts'

// Wire names of the published API.

const proxyOf = (calls: string) =>
  Type.Optional(
    Type.String({
      description: `Proxy for ${calls} calls: http:// or https://, perhaps with a login: http://USER:PASSWORD@HOST:PORT. A reply has a mask in place of the password; sent back with the same user, host and port it leaves the password as it is.`,
    }),
  )

export const EdgeHostConfigurations = Type.Object({
  caCerts: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Certificates of authorities that this host trusts: base64 of PEM, each.',
    }),
  ),
  httpProxy: proxyOf('http:'),
  httpsProxy: proxyOf('https:'),
  noProxy: Type.Optional(
    Type.String({
      description:
        'Names, addresses and networks that need no proxy, separated by commas. The networks of pods, services and nodes, the address of the control plane and loopback never do.',
    }),
  ),
})
/** Proxy and authorities of a host. */
export type EdgeHostConfigurations = Static<typeof EdgeHostConfigurations>

export const EdgeHostConfigurationStatus = Type.Object({
  state: Type.Enum(['Not Configured', 'In Progress', 'Configured', 'Failed']),
  errorMessage: Type.Optional(Type.String({ description: 'Why it failed. It is tried again.' })),
  uid: Type.Optional(Type.String({ description: 'Of the last change.' })),
  waitsFor: Type.Optional(
    Type.String({ description: 'What has to end before it is put in place, as a step of the cluster.' }),
  ),
  noProxy: Type.Optional(
    Type.String({ description: 'What needs no proxy, with what edgehostd adds; absent without a proxy.' }),
  ),
})
export type EdgeHostConfigurationStatus = Static<typeof EdgeHostConfigurationStatus>

export const ConfigurationQuery = Type.Object({
  dryRun: Type.Optional(
    Type.Boolean({ description: 'Only check the configuration, and say what restarts for it.' }),
  ),
})

export const ConfigurationDryRun = Type.Object({
  changes: Type.Array(Type.String(), { description: 'What differs from the present configuration.' }),
  restarts: Type.Array(Type.String(), {
    description: 'Units of this host that restart; their containers and pods go on.',
  }),
  noProxy: Type.Array(Type.String(), {
    description: 'What needs no proxy, with what edgehostd adds; empty without a proxy.',
  }),
})
export type ConfigurationDryRun = Static<typeof ConfigurationDryRun>

export const ConfigurationAccepted = Type.Object({ message: Type.String(), uid: Type.String() })
export type ConfigurationAccepted = Static<typeof ConfigurationAccepted>

const optionalText = (description: string) => Type.Optional(Type.String({ description }))

const NetworkConfig = Type.Object(
  {
    ...EdgeHostConfigurations.properties,
    interfaces: Type.Optional(
      Type.Record(Type.String(), InterfaceOfUserData, {
        description:
          'By name. Those that differ from what is configured are changed in one trial; they have to be of one program, as systemd-networkd.',
      }),
    ),
  },
  { title: 'NetworkConfig' },
)

export const Management = Type.Object(
  {
    type: Type.Enum(['central', 'local']),
    platformEndpoint: optionalText('https://platform.plant.example, with the type central.'),
    edgeHostToken: optionalText(
      'A registration token. Not needed where the platform knows the host by its key; never in a reply.',
    ),
    projectName: optionalText('That of the token; refused where it is another one.'),
    insecure: Type.Optional(
      Type.Boolean({
        description:
          'Refused: the certificate of a platform is always checked. network.caCerts has its authority.',
      }),
    ),
  },
  { title: 'Management' },
)
/** Who manages a host, as user data has it. */
export type Management = Static<typeof Management>

export const RegistryCredentials = Type.Object(
  {
    certificates: Type.Optional(
      Type.Array(Type.String(), { description: 'Authorities of the registry: base64 of PEM, each.' }),
    ),
    domain: optionalText('As names of images begin with it: registry.example:5000.'),
    encodedPassword: Type.Optional(Type.Boolean({ description: 'Whether the password is base64.' })),
    insecure: Type.Optional(Type.Boolean({ description: 'The certificate of the registry is not checked.' })),
    password: optionalText('A reply has a mask, which leaves it as it is for the same domain and username.'),
    repositoryName: optionalText('Refused: a login counts for a whole registry.'),
    username: optionalText('With a password.'),
  },
  {
    title: 'RegistryCredentials',
    description:
      'A registry from which the cluster of this host pulls what its content does not have. Without a value in it there is none.',
  },
)
/** A registry of others, as user data has it. */
export type RegistryCredentials = Static<typeof RegistryCredentials>

export const CloudInit = Type.Object(
  {
    hostName: optionalText('Another name is set at once, as by PUT hostname.'),
    network: Type.Optional(NetworkConfig),
    registryCredentials: Type.Optional(RegistryCredentials),
    stages: optionalText(
      'Commands and files of root, base64 of YAML: stages of steps with name, commands and files. Where the configuration file has userData.stages: true. They are run once; a mask leaves them as they are.',
    ),
    tags: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    v1Management: Type.Optional(Management),
  },
  { title: 'CloudInit' },
)
/** What a host is given before it has a cluster. */
export type CloudInit = Static<typeof CloudInit>

export const UserData = Type.Object({
  hostName: Type.String(),
  network: NetworkConfig,
  registryCredentials: Type.Optional(RegistryCredentials),
  stages: Type.Optional(Type.String({ description: 'A mask.' })),
  stagesStatus: Type.Optional(
    Type.Object({
      state: Type.Enum(['waiting', 'running', 'done', 'failed']),
      message: Type.Optional(Type.String({ description: 'Where and why they failed.' })),
      since: Type.String({ format: 'date-time' }),
    }),
  ),
  tags: Type.Record(Type.String(), Type.Unknown()),
  v1Management: Type.Object({
    type: Type.Enum(['central', 'local']),
    platformEndpoint: Type.Optional(Type.String()),
    projectName: Type.Optional(Type.String()),
  }),
  networkChange: Type.Optional(
    Type.Object(
      { uid: Type.String(), summary: Type.String(), state: Type.String() },
      { description: 'The change of the network that is tried now; network shows what is in force.' },
    ),
  ),
})
export type UserData = Static<typeof UserData>

export const UserDataCreated = Type.Object({ uid: Type.String() })
