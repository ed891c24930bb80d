# Sets up OpenStack on a booted Debian that has its packages: one worker of each service, behind nginx, which speaks TLS.
# To be run as root with the address at which clients reach it. The only network agent is a row of the database: Neutron binds
# ports to it, and nothing is plugged in, as nova-compute has a driver that starts nothing.
set -euo pipefail
address=$1
password=$(openssl rand -hex 16)
host=$(hostname)

echo "127.0.0.1 controller" >> /etc/hosts
systemctl start mariadb rabbitmq-server
for database in keystone placement nova nova_api nova_cell0 neutron glance; do
  mysql -e "CREATE DATABASE $database; GRANT ALL ON $database.* TO 'openstack'@'localhost' IDENTIFIED BY '$password'"
done
rabbitmqctl --quiet add_user openstack "$password"
rabbitmqctl --quiet set_permissions openstack '.*' '.*' '.*'

mysql_of() { echo "mysql+pymysql://openstack:$password@localhost/$1?unix_socket=/run/mysqld/mysqld.sock"; }
rabbit="rabbit://openstack:$password@localhost"
# A section with what a service needs to ask Keystone.
service() {
  printf '[%s]\nauth_type = password\nauth_url = http://controller:5000/v3\nusername = service\npassword = %s\nproject_name = service\nuser_domain_name = Default\nproject_domain_name = Default\nregion_name = RegionOne\n' "$1" "$password"
}
token() {
  service keystone_authtoken
  # For five minutes by default a service does not see that credentials were deleted.
  printf 'www_authenticate_uri = http://controller:5000/v3\nservice_token_roles_required = false\ntoken_cache_time = 10\n'
}

cat > /etc/keystone/keystone.conf <<END
[database]
connection = $(mysql_of keystone)
[token]
provider = fernet
END
cat > /etc/placement/placement.conf <<END
[api]
auth_strategy = keystone
[placement_database]
connection = $(mysql_of placement)
$(token)
END
cat > /etc/glance/glance-api.conf <<END
[database]
connection = $(mysql_of glance)
[glance_store]
stores = file
default_store = file
filesystem_store_datadir = /var/lib/glance/images
[paste_deploy]
flavor = keystone
$(token)
END
cat > /etc/nova/nova.conf <<END
[DEFAULT]
transport_url = $rabbit
compute_driver = fake.FakeDriver
state_path = /var/lib/nova
vif_plugging_is_fatal = false
vif_plugging_timeout = 0
allow_resize_to_same_host = true
reclaim_instance_interval = 3600
shelved_offload_time = 3600
# On a busy machine. A server whose message was not answered in time is being built for ever.
rpc_response_timeout = 300
[api]
max_limit = 50
[api_database]
connection = $(mysql_of nova_api)
[database]
connection = $(mysql_of nova)
[conductor]
workers = 1
[scheduler]
workers = 1
[filter_scheduler]
enabled_filters = ComputeFilter
[glance]
api_servers = http://controller:9292
[oslo_concurrency]
lock_path = /run/lock/nova
[quota]
driver = nova.quota.NoopQuotaDriver
$(service placement)
$(service neutron)
$(service service_user)
$(token)
END
# The package's own file names a driver of a real hypervisor.
: > /etc/nova/nova-compute.conf
cat > /etc/neutron/neutron.conf <<END
[DEFAULT]
transport_url = $rabbit
core_plugin = ml2
service_plugins = router
notify_nova_on_port_status_changes = false
notify_nova_on_port_data_changes = false
[database]
connection = $(mysql_of neutron)
[oslo_concurrency]
lock_path = /run/lock/neutron
[quotas]
default_quota = -1
quota_port = -1
$(token)
END
mkdir -p /etc/neutron/plugins/ml2
cat > /etc/neutron/plugins/ml2/ml2_conf.ini <<END
[ml2]
type_drivers = flat
tenant_network_types = flat
mechanism_drivers = openvswitch
[ml2_type_flat]
flat_networks = *
END
for service in keystone nova placement glance neutron; do
  chown -R root:$service /etc/$service
  sed -i 's/^processes = .*/processes = 1/; s/^threads = .*/threads = 4/; s/,apparmor//; /^apparmor-profile/d' /etc/$service/*uwsgi.ini
done

# Each takes seconds, and they do not depend on each other.
as() { setpriv --reuid="$1" --regid="$1" --init-groups "${@:2}"; }
(
  as keystone keystone-manage db_sync
  keystone-manage fernet_setup --keystone-user keystone --keystone-group keystone
  keystone-manage credential_setup --keystone-user keystone --keystone-group keystone
  as keystone keystone-manage bootstrap --bootstrap-password "$password" --bootstrap-region-id RegionOne \
    --bootstrap-internal-url http://controller:5000/v3 --bootstrap-public-url "https://$address:5443/v3"
  systemctl start keystone
) & keystone=$!
(as placement placement-manage db sync; systemctl start placement-api) & placement=$!
(as glance glance-manage db_sync; systemctl start glance-api) & glance=$!
(
  as nova nova-manage api_db sync
  as nova nova-manage cell_v2 map_cell0 --database_connection "$(mysql_of nova_cell0)"
  as nova nova-manage cell_v2 create_cell --name cell1
  as nova nova-manage db sync
) & nova=$!
(
  as neutron neutron-db-manage --config-file /etc/neutron/neutron.conf --config-file /etc/neutron/plugins/ml2/ml2_conf.ini upgrade heads
  mysql neutron -e "INSERT INTO agents (id, agent_type, \`binary\`, topic, host, admin_state_up, created_at, started_at, heartbeat_timestamp, configurations, \`load\`)
    VALUES ('$(cat /proc/sys/kernel/random/uuid)', 'Open vSwitch agent', 'neutron-openvswitch-agent', 'N/A', '$host', 1, NOW(), NOW(), '2099-01-01', '{\"bridge_mappings\": {\"plant\": \"br-plant\"}, \"tunnel_types\": [], \"datapath_type\": \"system\", \"ovs_capabilities\": {\"datapath_types\": [], \"iface_types\": []}}', 0)"
  systemctl start neutron-api
) & neutron=$!

# nginx speaks TLS for all of them.
mkdir -p /etc/openstack
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=openstack \
  -addext "subjectAltName=IP:$address,IP:127.0.0.1" -keyout /etc/openstack/key.pem -out /etc/openstack/certificate.pem 2> /dev/null
{
  printf 'user root;\nworker_processes 1;\nevents {}\nhttp {\n  access_log /var/log/nginx/access.log;\n  ssl_certificate /etc/openstack/certificate.pem;\n  ssl_certificate_key /etc/openstack/key.pem;\n'
  for pair in 5443:5000 8443:8774 9443:9696; do
    printf '  server { listen %s ssl; location / { proxy_pass http://127.0.0.1:%s; proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto https; } }\n' "${pair%:*}" "${pair#*:}"
  done
  printf '}\n'
} > /etc/nginx/nginx.conf
systemctl start nginx

wait $keystone
# Users and endpoints by curl: the client of OpenStack takes a second for each call.
identity=http://controller:5000/v3
until curl -sf -o /dev/null "$identity"; do sleep 0.2; done
token=$(curl -sf -D - -o /dev/null "$identity/auth/tokens" -H 'Content-Type: application/json' -d "{\"auth\": {
  \"identity\": {\"methods\": [\"password\"], \"password\": {\"user\": {\"name\": \"admin\", \"domain\": {\"id\": \"default\"}, \"password\": \"$password\"}}},
  \"scope\": {\"project\": {\"name\": \"admin\", \"domain\": {\"id\": \"default\"}}}}}" | tr -d '\r' | sed -n 's/^X-Subject-Token: //Ip')
ask() { curl -sf -X "$1" "$identity/$2" -H "X-Auth-Token: $token" -H 'Content-Type: application/json' ${3:+-d "$3"}; }
id() { grep -o '"id": *"[^"]*"' | head -1 | cut -d'"' -f4; }
role() { ask GET "roles?name=$1" | id; }
project() { ask POST projects "{\"project\": {\"name\": \"$1\", \"domain_id\": \"default\"}}" | id; }
user() { ask POST users "{\"user\": {\"name\": \"$1\", \"domain_id\": \"default\", \"password\": \"$password\"}}" | id; }
grant() { ask PUT "projects/$1/users/$2/roles/$(role "$3")"; }
endpoints() {
  service=$(ask POST services "{\"service\": {\"type\": \"$1\", \"name\": \"$2\"}}" | id)
  for each in "public $3" "internal $4" "admin $4"; do
    ask POST endpoints "{\"endpoint\": {\"service_id\": \"$service\", \"interface\": \"${each% *}\", \"region_id\": \"RegionOne\", \"url\": \"${each#* }\"}}" > /dev/null
  done
}
endpoints compute nova "https://$address:8443/v2.1" http://controller:8774/v2.1
endpoints network neutron "https://$address:9443" http://controller:9696
endpoints placement placement http://controller:8778 http://controller:8778
endpoints image glance http://controller:9292 http://controller:9292
services=$(project service)
account=$(user service)
grant "$services" "$account" admin
grant "$services" "$account" service 2> /dev/null || true
plant=$(project plant)
grant "$plant" "$(user owner)" member
grant "$plant" "$(user reader)" reader
grant "$plant" "$(ask GET 'users?name=admin' | id)" admin

printf '%s' "$password" > /etc/openstack/password
chmod 600 /etc/openstack/password

# The services of Nova ask Keystone when they start.
for job in $placement $glance $nova $neutron; do wait "$job"; done
systemctl start nova-api nova-conductor nova-scheduler nova-compute
