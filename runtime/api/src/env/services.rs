//! Variables that tell a container where Services are.

use k8s_openapi::api::core::v1 as k8s;

/// `NAME_SERVICE_HOST`, `NAME_SERVICE_PORT` and so on, for every Service that has an address and a port, in order.
pub fn service_variables<'a>(services: impl IntoIterator<Item = &'a k8s::Service>) -> Vec<(String, String)> {
    services.into_iter().flat_map(of_service).collect()
}

/// Can the Service be reached at an address of its own?
pub(super) fn has_address(service: &k8s::Service) -> bool {
    address_of(service).is_some()
}

fn address_of(service: &k8s::Service) -> Option<&str> {
    let address = service.spec.as_ref()?.cluster_ip.as_deref();
    address.filter(|ip| !ip.is_empty() && *ip != "None")
}

fn of_service(service: &k8s::Service) -> Vec<(String, String)> {
    let ports = service.spec.as_ref().and_then(|spec| spec.ports.as_deref()).unwrap_or_default();
    let (Some(address), Some(first)) = (address_of(service), ports.first()) else { return Vec::new() };

    let name = variable_name(service.metadata.name.as_deref().unwrap_or_default());
    let mut variables = vec![
        (format!("{name}_SERVICE_HOST"), address.to_owned()),
        (format!("{name}_SERVICE_PORT"), first.port.to_string()),
    ];
    for port in ports {
        if let Some(port_name) = port.name.as_deref().filter(|name| !name.is_empty()) {
            variables.push((format!("{name}_SERVICE_PORT_{}", variable_name(port_name)), port.port.to_string()));
        }
    }
    // The way that container links spelt it, long before Services; programs still read it.
    variables.push((format!("{name}_PORT"), url(address, first)));
    for port in ports {
        let protocol = protocol(port);
        let prefix = format!("{name}_PORT_{}_{}", port.port, protocol.to_uppercase());
        variables.push((format!("{prefix}_PROTO"), protocol.to_lowercase()));
        variables.push((format!("{prefix}_PORT"), port.port.to_string()));
        variables.push((format!("{prefix}_ADDR"), address.to_owned()));
        let end = variables.len() - 3;
        variables.insert(end, (prefix, url(address, port)));
    }
    variables
}

fn url(address: &str, port: &k8s::ServicePort) -> String {
    let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    format!("{}://{host}:{}", protocol(port).to_lowercase(), port.port)
}

fn protocol(port: &k8s::ServicePort) -> &str {
    port.protocol.as_deref().filter(|protocol| !protocol.is_empty()).unwrap_or("TCP")
}

fn variable_name(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}
